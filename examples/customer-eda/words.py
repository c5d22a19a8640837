"""The word lists that made-up customers are drawn from."""

FIRST_NAMES = """
Ada Aino Akira Alba Alma Amara Anders Aneta Anouk Arjun Asha Astrid Aurel Ayo Beata Benoit
Birgit Bruno Camila Carmen Cedric Chiara Chidi Clara Dalia Damir Daria Diego Dora Edda Efua
Elias Elif Emre Enzo Esme Eva Farid Fatou Felix Fiona Freya Gaspard Gita Goran Greta Hana Haruto
Hedda Hugo Ibrahim Ida Ilse Imani Ines Iris Ivo Jana Jasper Jin Joana Juno Kaan Kai Karin Kofi
Lars Leila Lena Leon Liv Lucia Luka Maeve Magnus Mali Marek Marisol Mateo Maya Mei Milan Mina
Mirko Nadia Naomi Nils Noor Nora Odile Olga Omar Oskar Otto Paloma Pavel Petra Priya Quentin
Rafael Ravi Renata Rosa Ruben Rui Salma Samir Selma Sigrid Silvia Sofia Soren Stella Sven Tamar
Tariq Tess Tilda Tomas Uma Ursula Valeria Vera Viktor Wanda Wim Yara Yusuf Zaida Zeno Zofia
""".split()

LAST_NAMES = """
Abara Achterberg Adeyemi Alcott Almeida Amador Andrade Aoki Arslan Asante Backman Bajwa Baran
Barros Bellweather Benitez Berglund Bianchi Bielak Blomqvist Boateng Bonnet Brandvold Brisk
Calder Cardoso Castell Cermak Chaudhry Clavel Conti Corvin Dahl Danso Delacroix Demir Dierks
Dragan Dubois Eklund Elmi Engel Escobar Fairweather Faber Ferrante Fiala Fontaine Forsberg Fuchs
Galan Garnier Gebauer Ghosh Gislason Gower Grieve Gruber Haddad Halvorsen Hartmann Hendrix
Hollander Horvat Ibarra Ilves Iqbal Ishida Jansen Jaramillo Jelinek Jokinen Kaminski Kapoor
Karlsen Kato Keller Kimura Koskinen Kovac Kowal Laine Lambrecht Larkin Leclerc Lindqvist Lopes
Lovell Maas Machado Malik Marchetti Marlowe Mbeki Mehta Meyer Moreau Moritz Nakata Navarro
Nemeth Nilsen Novak Nygaard Obi Okafor Olsen Ortega Osei Oyelaran Paixao Pallas Park Pereira
Petrov Pham Pinter Popescu Quaye Quist Rahal Ramos Rautio Reis Renner Ricci Rosales Rousseau
Sandoval Santos Sato Schiller Serra Shah Silveira Skov Soler Stahl Strand Suarez Szabo Takeda
Tamm Tavares Thorne Tran Ulrich Valente Varga Vasquez Veld Vidal Vogel Waldron Weiss Winther
Yamada Yilmaz Zanetti Zeman
""".split()

TRADES = """
Aperture Anvil Beacon Bramble Brickyard Canopy Cedar Cinder Cobalt Compass Copper Cove Delta
Driftwood Ember Fathom Fern Flint Foundry Gable Granite Grove Harbour Heron Hollow Inlet Juniper
Keel Kestrel Lantern Larch Ledger Linden Loom Marble Meadow Mill Nimbus North Oak Orchard Osprey
Paper Pebble Pine Plough Quarry Quill Raven Ridge River Rook Saffron Sail Slate Spindle Spruce
Starling Stone Summit Tallow Thistle Tide Timber Trellis Vale Vellum Walnut Willow
""".split()

CRAFTS = """
Analytics Bakery Bearings Books Brewing Cables Catering Ceramics Cloud Coatings Coffee
Consulting Crafts Dental Design Energy Engineering Fabrics Farms Films Finance Foods Freight
Gardens Glass Health Homes Instruments Insurance Kitchens Labs Lighting Logistics Machines
Marine Media Metals Motors Music Networks Optics Outdoor Packaging Paints Pharma Power Press
Print Records Robotics Schools Security Seeds Software Solar Sports Studios Supply Systems
Textiles Tools Toys Travel Water Wines Works
""".split()

FORMS = ["Ltd", "Inc", "GmbH", "LLC", "SA", "AB", "BV", "Oy", "PLC", "Group", "& Co"]

CITY_STARTS = """
Alder Amber Ash Bad Barrow Bel Birch Black Bright Bur Cald Castel Clear Cold Dun East Elm Fair
Fal Glen Gold Grand Green Hart Haver High Kings Lake Long Lunde Mar Mill Mont New Nor Oster Port
Quin Red Rose Saint Salt San Silver Stav Sund Thorn Ul Val Vester Wald West White Win Wood Ys
""".split()

CITY_ENDS = """
bach berg borough bridge burg bury by dale dorf fell field ford gate grad ham haven heim holm
hurst lea ley mar minster mont mouth point polis port ridge shore stad stead sted stone ton town
vale view vik ville wick worth
""".split()

# Weight, ending: how often an e-mail address or a website ends so.
ENDINGS = [(58, "com"), (11, "net"), (10, "org"), (8, "io"), (7, "info"), (6, "eu")]

COUNTRIES = {
    "Africa": """
Algeria|Angola|Benin|Botswana|Burkina Faso|Burundi|Cameroon|Cape Verde|
Central African Republic|Chad|Comoros|Congo|Cote d'Ivoire|Djibouti|Egypt|Equatorial Guinea|
Eritrea|Ethiopia|Gabon|Gambia|Ghana|Guinea|Guinea-Bissau|Kenya|Lesotho|Liberia|Madagascar|
Malawi|Mali|Mauritania|Mauritius|Mayotte|Morocco|Mozambique|Namibia|Niger|Nigeria|Reunion|
Rwanda|Saint Helena|Sao Tome and Principe|Senegal|Seychelles|Sierra Leone|Somalia|
South Africa|Sudan|Swaziland|Togo|Tunisia|Uganda|Western Sahara|Zambia|Zimbabwe""",
    "Asia": """
Afghanistan|Armenia|Azerbaijan|Bahrain|Bangladesh|Bhutan|Brunei Darussalam|Cambodia|China|
Cyprus|Georgia|Hong Kong|India|Indonesia|Iraq|Israel|Japan|Jordan|Kazakhstan|Korea|Kuwait|
Lebanon|Malaysia|Maldives|Mongolia|Myanmar|Nepal|Oman|Pakistan|Palestinian Territory|
Philippines|Qatar|Saudi Arabia|Singapore|Sri Lanka|Taiwan|Tajikistan|Thailand|Timor-Leste|
Turkey|Turkmenistan|United Arab Emirates|Uzbekistan|Vietnam|Yemen""",
    "Europe": """
Albania|Andorra|Austria|Belarus|Belgium|Bosnia and Herzegovina|Bulgaria|Croatia|
Czech Republic|Denmark|Estonia|Faroe Islands|Finland|France|Germany|Gibraltar|Greece|Guernsey|
Hungary|Iceland|Ireland|Isle of Man|Italy|Jersey|Latvia|Liechtenstein|Lithuania|Luxembourg|
Macedonia|Malta|Moldova|Monaco|Montenegro|Netherlands|Norway|Poland|Portugal|Romania|
Russian Federation|San Marino|Serbia|Slovakia (Slovak Republic)|Slovenia|Spain|Sweden|
Switzerland|Ukraine|United Kingdom|Vatican City""",
    "North America": """
Anguilla|Antigua and Barbuda|Aruba|Bahamas|Barbados|Belize|Bermuda|Canada|Cayman Islands|
Costa Rica|Cuba|Dominica|Dominican Republic|El Salvador|Greenland|Grenada|Guadeloupe|
Guatemala|Haiti|Honduras|Jamaica|Martinique|Mexico|Montserrat|Nicaragua|Panama|Puerto Rico|
Saint Barthelemy|Saint Lucia|Saint Martin|Trinidad and Tobago|Turks and Caicos Islands|
United States|United States Virgin Islands""",
    "South America": """
Argentina|Bolivia|Brazil|Chile|Colombia|Ecuador|Falkland Islands (Malvinas)|French Guiana|
Guyana|Paraguay|Peru|Suriname|Uruguay|Venezuela""",
    "Oceania": """
American Samoa|Australia|Cook Islands|Fiji|French Polynesia|Guam|Kiribati|Marshall Islands|
Micronesia|Nauru|New Caledonia|New Zealand|Niue|Norfolk Island|Palau|Papua New Guinea|
Pitcairn Islands|Samoa|Solomon Islands|Tokelau|Tonga|Tuvalu|
United States Minor Outlying Islands|Vanuatu""",
    "Antarctica": """
Antarctica (the territory South of 60 deg S)|Bouvet Island (Bouvetoya)|
French Southern Territories""",
}

# Countries with more customers than the rest, by how many times as many.
MARKETS = {
    "Australia": 6, "Austria": 5, "Belgium": 5, "Brazil": 9, "Canada": 9, "France": 11,
    "Germany": 14, "India": 12, "Italy": 8, "Japan": 7, "Kenya": 4, "Korea": 5, "Mexico": 6,
    "Netherlands": 9, "Nigeria": 6, "Norway": 4, "Poland": 7, "Portugal": 5,
    "South Africa": 6, "Spain": 8, "Sweden": 6, "Switzerland": 6, "Turkey": 5,
    "United Kingdom": 13, "United States": 18,
}  # fmt: skip


def countries() -> dict[str, str]:
    """Every country name of the lists with its continent."""
    return {
        name.strip(): continent
        for continent, names in COUNTRIES.items()
        for name in names.split("|")
    }
